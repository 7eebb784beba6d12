#include "interposer/record/operation_shape.h"

#include <gtest/gtest.h>

#include <set>

namespace spillway::interposer {
namespace {

TEST(OperationShapeTest, DiffersWhereLaunchesDiffer) {
  const Shape gemm = ShapeOfName("gemm"), relu = ShapeOfName("relu");

  const std::set<Shape> shapes = {
      ShapeOfLaunch(gemm, {1, 2, 3, 4, 5, 6, 0}), ShapeOfLaunch(relu, {1, 2, 3, 4, 5, 6, 0}),
      ShapeOfLaunch(gemm, {2, 1, 3, 4, 5, 6, 0}), ShapeOfLaunch(gemm, {1, 3, 2, 4, 5, 6, 0}),
      ShapeOfLaunch(gemm, {1, 2, 4, 3, 5, 6, 0}), ShapeOfLaunch(gemm, {1, 2, 3, 5, 4, 6, 0}),
      ShapeOfLaunch(gemm, {1, 2, 3, 4, 6, 5, 0}), ShapeOfLaunch(gemm, {1, 2, 3, 4, 5, 6, 1}),
  };

  EXPECT_EQ(shapes.size(), 8u);
}

TEST(OperationShapeTest, IsTheSameInEveryRun) {
  EXPECT_EQ(ShapeOfLaunch(ShapeOfName("gemm"), {8, 1, 1, 256, 1, 1, 0}),
            ShapeOfLaunch(ShapeOfName(std::string("gemm").c_str()), {8, 1, 1, 256, 1, 1, 0}));
}

TEST(OperationShapeTest, DependsOnTheOrderOfNames) {
  EXPECT_NE(ShapeOfName("ab"), ShapeOfName("ba"));
  EXPECT_NE(ShapeOfName(""), ShapeOfName("a"));
}

TEST(OperationShapeTest, DependsOnTheStream) {
  EXPECT_NE(ShapeOnStream(7, 0), ShapeOnStream(7, 1));
}

}  // namespace
}  // namespace spillway::interposer

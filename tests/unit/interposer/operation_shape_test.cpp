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
  EXPECT_NE(ShapeOnStream(7, 0, 5), ShapeOnStream(7, 1, 5));
}

TEST(OperationShapeTest, DependsOnTheSizesAndTheirOrder) {
  constexpr std::uint64_t kMany = 64 << 20, kFew = 2 << 20;
  const std::set<std::uint64_t> sizes = {
      0,
      AddSize(0, kFew),
      AddSize(0, kMany),
      AddSize(AddSize(0, kFew), kMany),
      AddSize(AddSize(0, kMany), kFew),
      AddSize(AddSize(0, kFew), kFew),
  };
  EXPECT_EQ(sizes.size(), 6u);
  EXPECT_NE(ShapeOnStream(7, 1, AddSize(0, kFew)), ShapeOnStream(7, 1, AddSize(0, kMany)));
}

TEST(OperationShapeTest, OfACallIsThatOfItsLaunch) {
  constexpr LaunchDimensions kDimensions{8, 1, 1, 256, 1, 1, 0};
  CallShape shape(3);
  EXPECT_EQ(shape.Mixed(), 3u);
  shape.kernel = ShapeOfName("gemm");
  shape.launched = &kDimensions;
  EXPECT_EQ(shape.Mixed(), ShapeOfLaunch(ShapeOfName("gemm"), kDimensions));
}

}  // namespace
}  // namespace spillway::interposer
